package client

import "context"

// Team returns the team of the key, and the public id and the scope of the key.
func (c *Client) Team(ctx context.Context) (TeamAndKey, error) {
	return fetch[TeamAndKey](ctx, c, get("/team", nil))
}
