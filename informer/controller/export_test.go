package controller

// SetBudget bounds what is kept of the changes that a source has not taken. It is for tests, before Run has subscribed.
func SetBudget(c *Controller, bytes int64) { c.budget = bytes }
