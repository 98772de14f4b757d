"""Objects of compiled code as plain arrays and text, checked before they are built again."""
