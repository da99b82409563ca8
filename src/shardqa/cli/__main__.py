from shardqa.cli import main

main()
