"""What a saver remembers between calls: encodings for the next put, segments for the next read."""
