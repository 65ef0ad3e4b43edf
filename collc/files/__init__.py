"""Reading and writing: all outputs or none, their names, dependencies for make."""
