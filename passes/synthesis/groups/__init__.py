"""A problem of some ranks -> Schedule or Forest: members, relays, and groups that share links."""
