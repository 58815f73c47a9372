package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"
)

// DeviceQuery selects devices.
type DeviceQuery struct {
	// Metadata selects the devices that have all of these tags with exactly these values.
	Metadata map[string]string
	// PageSize is the number of devices per request, at most 1000. 0 means 1000.
	PageSize int
}

func (q DeviceQuery) values() url.Values {
	v := url.Values{}
	addMetadata(v, q.Metadata)
	addLimit(v, q.PageSize)
	return v
}

func addMetadata(v url.Values, tags map[string]string) {
	for key, value := range tags {
		v.Set("metadata."+key, value)
	}
}

func addLimit(v url.Values, n int) {
	if n != 0 {
		v.Set("limit", strconv.Itoa(n))
	}
}

// Devices returns the devices of the team in the order of their ids.
func (c *Client) Devices(ctx context.Context, q DeviceQuery) iter.Seq2[Device, error] {
	return list[Device](ctx, c, "/devices", q.values(), nil)
}

// CurrentDevices returns the devices of the team with their latest reading and a summary of the last 24 hours, in the
// order of their ids.
func (c *Client) CurrentDevices(ctx context.Context, q DeviceQuery) iter.Seq2[CurrentDevice, error] {
	return list[CurrentDevice](ctx, c, "/devices/current", q.values(), nil)
}

// Device returns one device. An id that is not the team's is CodeDeviceNotFound.
func (c *Client) Device(ctx context.Context, id uuid.UUID) (Device, error) {
	return fetch[Device](ctx, c, get(devicePath(id), nil))
}

func devicePath(id uuid.UUID) string { return "/devices/" + id.String() }

// DeviceChange is a change of a device.
type DeviceChange struct {
	// DisplayName is the new name, of 1 to 200 characters. A pointer to an empty string removes the name; nil keeps it.
	DisplayName *string
	// Metadata sets the tags that it lists, and removes those whose value is nil. Other tags stay.
	Metadata map[string]*string
	// ClearMetadata removes all tags. Metadata must be empty then.
	ClearMetadata bool
	// IdempotencyKey makes the change run once within 24 hours, however often it is sent: also if the program ends before
	// it gets the response, and sends the same change with the same key later. If it is empty, the client uses a new
	// one, which covers its own retries.
	IdempotencyKey string
}

// MarshalJSON returns the body of the request.
func (d DeviceChange) MarshalJSON() ([]byte, error) {
	body := map[string]any{}
	if d.DisplayName != nil {
		body["display_name"] = d.DisplayName
		if *d.DisplayName == "" {
			body["display_name"] = nil
		}
	}
	if len(d.Metadata) > 0 {
		body["metadata"] = d.Metadata
	}
	if d.ClearMetadata {
		if len(d.Metadata) > 0 {
			return nil, fmt.Errorf("a change of a device has both Metadata and ClearMetadata")
		}
		body["metadata"] = nil
	}
	return json.Marshal(body) //nolint:wrapcheck // It cannot fail.
}

// UpdateDevice changes the name or the tags of a device, and returns the changed device. It needs a key with the scope
// read_write.
func (c *Client) UpdateDevice(ctx context.Context, id uuid.UUID, change DeviceChange) (Device, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return Device{}, fmt.Errorf("encoding a change: %w", err)
	}
	key := change.IdempotencyKey
	if key == "" {
		key = uuid.NewString()
	}
	return fetch[Device](ctx, c, &request{
		method: http.MethodPatch, path: devicePath(id), body: body,
		header: http.Header{"Content-Type": {"application/json"}, "Idempotency-Key": {key}},
	})
}

// AssignmentQuery selects assignments of all devices.
type AssignmentQuery struct {
	// Window is a period that the assignments overlap, at most 3660 days. By default, they are open now. It takes no
	// assignment.
	Window Window
	// ExternalRef and Label are what the assignments have exactly. Empty means any.
	ExternalRef, Label string
	// Type is what the assignments track. Empty means both.
	Type AssignmentType
	// Metadata selects the assignments of devices that have all of these tags with exactly these values.
	Metadata map[string]string
	// PageSize is the number of assignments per request, at most 1000. 0 means 1000.
	PageSize int
}

// TeamAssignments returns assignments of all devices, newest first.
func (c *Client) TeamAssignments(ctx context.Context, q AssignmentQuery) iter.Seq2[TeamAssignment, error] {
	v := url.Values{}
	err := q.Window.add(v)
	addText(v, "external_ref", q.ExternalRef)
	addText(v, "label", q.Label)
	addText(v, "type", string(q.Type))
	addMetadata(v, q.Metadata)
	addLimit(v, q.PageSize)
	return list[TeamAssignment](ctx, c, "/assignments", v, err)
}

// addText adds a parameter, unless it is empty.
func addText(v url.Values, name, text string) {
	if text != "" {
		v.Set(name, text)
	}
}

// Assignments returns the past and current assignments of a device, newest first.
func (c *Client) Assignments(ctx context.Context, id uuid.UUID) iter.Seq2[Assignment, error] {
	return list[Assignment](ctx, c, devicePath(id)+"/assignments", nil, nil)
}
