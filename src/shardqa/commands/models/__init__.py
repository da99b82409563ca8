"""`shardqa models …`: from a trained BERT to a small, fast, checked reader."""

import typer

app = typer.Typer(
    name="models",
    help="Train, shrink, check and package readers.",
    no_args_is_help=True,
)
