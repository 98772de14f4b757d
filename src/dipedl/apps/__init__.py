"""Applications on the library: tables, command line, service, large data, monitor, spectra."""
