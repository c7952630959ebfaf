"""How numpy's and pandas' values are stored. The serializer finds these kinds once a program imports their library."""
