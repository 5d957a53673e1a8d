from gluonmap.cli.main import main

main()
