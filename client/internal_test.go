package client

import (
	"context"
	"time"
)

// SetSleep replaces the pause before a retry.
func (c *Client) SetSleep(sleep func(context.Context, time.Duration) error) { c.sleep = sleep }
