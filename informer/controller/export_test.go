package controller

// SetBudget sets the budget of the controller's subscriptions. Call it before Run.
func SetBudget(c *Controller, bytes int64) { c.budget = bytes }
