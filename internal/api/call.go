package api

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// call is one request on its way through the service.
type call struct {
	echo.Context
	requestID string
	began     time.Time
	left      func() error   // of the context it came with, which ends when the client goes away
	key       roomsensor.Key // once authenticated
	rows      int            // in the answer; -1 where it has none
	err       error          // what went wrong, if something did
}

const callKey = "roomsensor.call"

func callOf(c echo.Context) *call {
	return c.Get(callKey).(*call) //nolint:forcetypeassert // observe puts it there, before anything else runs.
}

func (c *call) ctx() context.Context { return c.Request().Context() }

// within bounds the rest of the request by a deadline.
func (c *call) within(limit time.Duration) context.CancelFunc {
	ctx, cancel := context.WithTimeout(c.ctx(), limit)
	c.SetRequest(c.Request().WithContext(ctx))
	return cancel
}

// gone reports whether the request failed because its client went away.
func (c *call) gone() bool {
	return c.err != nil && errors.Is(c.left(), context.Canceled)
}

func (c *call) setHeader(name, value string) { c.Response().Header().Set(name, value) }

// deviceID reads the id in the path (decision 7).
func (c *call) deviceID() (uuid.UUID, error) {
	return parseID("device_id", c.Param("device_id"))
}

// parseID takes the 36-character hyphenated form alone, in any letter case
// (decision 7).
func parseID(param, text string) (uuid.UUID, error) {
	if len(text) == len("00000000-0000-0000-0000-000000000000") {
		if id, err := uuid.Parse(text); err == nil {
			return id, nil
		}
	}
	return uuid.Nil, roomsensor.Invalid(param, param+" must be a uuid of 36 characters, "+
		"for example 0b5e7a52-6c1f-4f0a-9d3e-2f6a1c8b7d90. A hardware_id is not accepted anywhere.")
}
