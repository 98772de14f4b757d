"""Reading and writing tables of many formats in pieces, with the kind of each column."""
