"""The program that a search looks at: few of many equal layers, and the problem that it is."""
