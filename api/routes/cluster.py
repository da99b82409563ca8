"""GET /v1/cluster: the nodes, for the page that shows them."""

from fastapi import APIRouter
from fastapi.responses import Response

from shardqa.api import bearer
from shardqa.api.gate import Route, operation
from shardqa.api.requests import as_json
from shardqa.api.state import Shared
from shardqa.schema import ClusterInfo

router = APIRouter(prefix="/v1", tags=["operations"], route_class=Route)


@router.get("/cluster", **operation("metrics", "Show the nodes", ClusterInfo))
async def get_cluster(state: Shared) -> Response:
    """Every node with its slots, what it holds, and how long a PING to it took. A node that is down has an `error`."""
    cluster = await state.engine.cluster()
    cluster.hour = state.metrics.last_hour() if bearer.sees_all() else []
    return as_json(cluster)
