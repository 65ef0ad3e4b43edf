"""Any collective that copies: trees at prices of links, mixed to the least time, with bounds that prices prove."""
