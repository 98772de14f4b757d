"""What a `DIPModule` keeps of its held-out rows, and the questions it answers by them."""
