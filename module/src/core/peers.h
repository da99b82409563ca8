/* Connections to the other nodes of the cluster, made for the worker. */
#ifndef SHARDQA_PEERS_H
#define SHARDQA_PEERS_H

enum { PEERS_FD = 5 }; /* of the worker */

int peers_open(void); /* for a new worker: the descriptor to hand on, which the caller closes; or -1 and errno */
void peers_close(void);
void peers_close_in_child(void); /* of a forked child of Redis: closes, and touches nothing of the event loop */

#endif
