from gluonmap.cli import main

main()
