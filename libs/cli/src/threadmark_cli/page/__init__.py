"""The page that `threadmark serve` opens in a browser: a small server over a saver's public methods, and its files."""
