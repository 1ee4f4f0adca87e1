"""What the program of one device costs, from shardings alone: that program is never built."""
