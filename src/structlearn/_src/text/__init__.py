"""What comes in? Columns, tokens, templates, label coding."""
