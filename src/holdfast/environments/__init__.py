"""From what the project says about Python packages to an environment plan, named by its content."""
