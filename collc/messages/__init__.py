"""Diagnostics as text, the codes and their explanations, quantities as people write them."""
