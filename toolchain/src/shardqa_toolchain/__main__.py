from shardqa_toolchain.cli import main

main()
