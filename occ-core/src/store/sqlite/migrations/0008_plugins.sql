-- The plugins that a draft selects, and who may approve for those that say nothing themselves.
ALTER TABLE agents ADD COLUMN plugins TEXT CHECK (json_type(plugins) = 'object');
ALTER TABLE agents ADD COLUMN plugin_approvers TEXT CHECK (json_type(plugin_approvers) = 'array');
