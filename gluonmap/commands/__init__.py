"""Commands of the tool beyond the main job, one a module; `cli` registers them."""
