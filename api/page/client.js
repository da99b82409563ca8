// The page's own client: the published one, which tells a busy server at once rather than trying again.

import { Client } from "/static/shardqa.js";

export const client = new Client({ retries: 0 });
