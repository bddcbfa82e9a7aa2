package controller

// SetBudget bounds what is kept of the changes that a source has not taken. Call it before Run.
func SetBudget(c *Controller, bytes int64) { c.budget = bytes }
