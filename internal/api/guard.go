package api

import (
	"time"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// admissionTimeout bounds finding the key and counting the request, where the
// route has no deadline of its own.
const admissionTimeout = 5 * time.Second

// guard puts before a handler what every operation needs, in the order of
// decision 22: key, rate, scope.
func (s *server) guard(r route) echo.HandlerFunc {
	return func(ec echo.Context) error {
		c := callOf(ec)
		if r.timeout > 0 {
			defer c.within(r.timeout)()
		}
		if err := s.admit(c, r.path == exportPath); err != nil {
			return err
		}
		if r.scope == roomsensor.ScopeReadWrite && c.key.Scope != roomsensor.ScopeReadWrite {
			return roomsensor.CodeInsufficientScope.New()
		}
		return r.handle(c)
	}
}

// admit authenticates a request and counts it.
func (s *server) admit(c *call, keyInURL bool) error {
	whole := c.Request()
	defer c.SetRequest(whole)
	defer c.within(admissionTimeout)()
	text, err := credentials(c.Request(), keyInURL)
	if err != nil {
		return err
	}
	if c.key, err = s.keys.authenticate(c.ctx(), text); err != nil {
		return err
	}
	return s.rate.count(c.ctx(), c.Response().Header(), c.key.ID)
}
