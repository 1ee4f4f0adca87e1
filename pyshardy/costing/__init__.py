"""What a program of one device would cost on hardware that need not be there: time, FLOPs, bytes and peak memory."""
