package admin

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/fleet"
)

// The objects that the commands print use the field names of the API. Every field is always present; null means that it
// has no value.

// List is the output of every command that lists objects.
type List[T any] struct {
	Data []T `json:"data"` // never nil, so that an empty list prints as []
}

func listOf[From, To any](rows []From, view func(*From) To) List[To] {
	list := List[To]{Data: make([]To, len(rows))}
	for i := range rows {
		list.Data[i] = view(&rows[i])
	}
	return list
}

// Team is a team.
type Team struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func viewTeam(t *roomsensor.Team) Team { return Team{t.ID.String(), t.Name} }

// TeamSettings is a team with what people set for it. Limits have the form of airquality.ParseLimit; metrics without
// one are left out.
type TeamSettings struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	TimeZone string            `json:"time_zone"`
	Night    string            `json:"night"`
	KeepDays *int32            `json:"keep_days"`
	Limits   map[string]string `json:"limits"`
	Rules    []LimitRule       `json:"limit_rules" table:"-"`
}

// LimitRule replaces a limit for one device or the devices with a tag.
type LimitRule struct {
	DeviceID *string `json:"device_id"`
	Tag      *string `json:"tag"`
	Metric   string  `json:"metric"`
	Limit    string  `json:"limit"`
}

func viewTeamSettings(t *accounts.TeamSettings) TeamSettings {
	view := TeamSettings{
		ID: t.ID.String(), Name: t.Name, TimeZone: t.TimeZone.String(), Night: t.Night.String(), KeepDays: t.KeepDays,
		Limits: map[string]string{}, Rules: make([]LimitRule, len(t.Limits.Rules)),
	}
	for _, m := range roomsensor.Metrics {
		if limit := t.Limits.Limits[m]; !limit.IsZero() {
			view.Limits[m.String()] = limit.String()
		}
	}
	for i, r := range t.Limits.Rules {
		view.Rules[i] = LimitRule{Metric: r.Metric.String(), Limit: r.Limit.String()}
		if r.DeviceID == uuid.Nil {
			view.Rules[i].Tag = &r.Tag
		} else {
			view.Rules[i].DeviceID = new(r.DeviceID.String())
		}
	}
	return view
}

// NewAPIKey is a new API key with its secret, which is shown only once.
type NewAPIKey struct {
	KeyID     string   `json:"key_id"`
	Key       string   `json:"key"`
	Scopes    []string `json:"scopes"`
	ExpiresAt *string  `json:"expires_at"`
}

func viewNewAPIKey(k *roomsensor.Key, text string) NewAPIKey {
	return NewAPIKey{KeyID: k.ID, Key: text, Scopes: []string{string(k.Scope)}, ExpiresAt: formatTime(k.ExpiresAt)}
}

// RotatedAPIKey is a new API key and the key that it replaces.
type RotatedAPIKey struct {
	NewAPIKey

	Replaces ReplacedKey `json:"replaces"`
}

// ReplacedKey is a key that another one replaces.
type ReplacedKey struct {
	KeyID     string  `json:"key_id"`
	ExpiresAt *string `json:"expires_at"`
}

func viewReplacedKey(k *roomsensor.Key) ReplacedKey {
	return ReplacedKey{k.ID, formatTime(k.ExpiresAt)}
}

// APIKey is an API key without its secret.
type APIKey struct {
	KeyID     string   `json:"key_id"`
	TeamID    string   `json:"team_id"    table:"-"`
	Label     *string  `json:"label"`
	Scopes    []string `json:"scopes"`
	CreatedAt string   `json:"created_at"`
	ExpiresAt *string  `json:"expires_at"`
	RevokedAt *string  `json:"revoked_at"`
}

func viewAPIKey(k *roomsensor.Key) APIKey {
	return APIKey{
		KeyID: k.ID, TeamID: k.TeamID.String(), Label: k.Label, Scopes: []string{string(k.Scope)},
		CreatedAt: roomsensor.FormatTime(k.CreatedAt), ExpiresAt: formatTime(k.ExpiresAt), RevokedAt: formatTime(k.RevokedAt),
	}
}

// LastUse is when a key was last used, to the minute, and by which client.
type LastUse struct {
	LastUsedAt *string `json:"last_used_at"`
	LastClient *string `json:"last_client"  table:"-"` // the User-Agent, shortened
}

func viewLastUse(use *roomsensor.KeyUse) (view LastUse) {
	if use == nil {
		return view
	}
	view.LastUsedAt = new(roomsensor.FormatTime(use.At))
	if use.Client != "" {
		view.LastClient = &use.Client
	}
	return view
}

// ListedAPIKey is an API key in the list of a team's keys.
type ListedAPIKey struct {
	APIKey
	LastUse
}

func viewListedAPIKey(k *roomsensor.Key) ListedAPIKey {
	return ListedAPIKey{viewAPIKey(k), viewLastUse(k.LastUse)}
}

// NewIngestKey is a new ingest key with its secret, which is shown only once.
type NewIngestKey struct {
	KeyID     string  `json:"key_id"`
	Key       string  `json:"key"`
	ExpiresAt *string `json:"expires_at"`
}

func viewNewIngestKey(k *roomsensor.Key, text string) NewIngestKey {
	return NewIngestKey{KeyID: k.ID, Key: text, ExpiresAt: formatTime(k.ExpiresAt)}
}

// RotatedIngestKey is a new ingest key and the key that it replaces.
type RotatedIngestKey struct {
	NewIngestKey

	Replaces ReplacedKey `json:"replaces"`
}

// IngestKey is an ingest key without its secret.
type IngestKey struct {
	KeyID     string  `json:"key_id"`
	TeamID    string  `json:"team_id"    table:"-"`
	SourceID  *string `json:"source_id"  table:"-"` // at which alone the key is valid; nil for uploads
	Label     *string `json:"label"`
	CreatedAt string  `json:"created_at"`
	ExpiresAt *string `json:"expires_at"`
	RevokedAt *string `json:"revoked_at"`
}

func viewIngestKey(k *roomsensor.Key) IngestKey {
	view := IngestKey{
		KeyID: k.ID, TeamID: k.TeamID.String(), Label: k.Label,
		CreatedAt: roomsensor.FormatTime(k.CreatedAt), ExpiresAt: formatTime(k.ExpiresAt), RevokedAt: formatTime(k.RevokedAt),
	}
	if k.Source != nil {
		view.SourceID = new(k.Source.ID.String())
	}
	return view
}

// ListedIngestKey is an ingest key in the list of a team's keys.
type ListedIngestKey struct {
	IngestKey
	LastUse
}

func viewListedIngestKey(k *roomsensor.Key) ListedIngestKey {
	return ListedIngestKey{viewIngestKey(k), viewLastUse(k.LastUse)}
}

// Device is a device with the fields of the API, and its team.
type Device struct {
	DeviceID         string              `json:"device_id"`
	TeamID           string              `json:"team_id"           table:"-"`
	HardwareID       string              `json:"hardware_id"`
	Alias            *string             `json:"alias"` // with which the unit's sender names it
	DisplayName      *string             `json:"display_name"`
	Sampling         roomsensor.Sampling `json:"sampling"        table:"-"`
	KeepDays         *int32              `json:"keep_days"         table:"-"` // null: that of the team
	FirmwareVersion  *string             `json:"firmware_version"  table:"-"`
	Metadata         map[string]string   `json:"metadata"          table:"-"`
	Status           roomsensor.Status   `json:"status"`
	LastSeenAt       *string             `json:"last_seen_at"`
	Signal           Signal              `json:"signal"            table:"-"`
	ActiveAssignment *ActiveAssignment   `json:"active_assignment"`
	RetiredAt        *string             `json:"retired_at,omitempty" table:"-"`
}

// Signal is the cellular signal of a device.
type Signal struct {
	RSSI *int32 `json:"rssi_dbm"`
	Bars *int16 `json:"bars"`
}

// ActiveAssignment is the embedded form of an open assignment (spec 2).
type ActiveAssignment struct {
	AssignmentID string  `json:"assignment_id" table:"-"`
	Label        string  `json:"label"`
	StartedAt    string  `json:"started_at"    table:"-"`
	ExternalRef  *string `json:"external_ref"  table:"-"`
}

func viewDevice(d *fleet.OwnedDevice, now time.Time) Device {
	view := Device{
		DeviceID: d.ID.String(), TeamID: d.TeamID.String(), HardwareID: d.HardwareID,
		DisplayName: d.DisplayName, FirmwareVersion: d.FirmwareVersion, Metadata: d.Metadata,
		Status: roomsensor.StatusAt(now, d.LastSeenAt), LastSeenAt: formatTime(d.LastSeenAt),
		Signal: Signal{d.Signal.RSSI, d.Signal.Bars}, RetiredAt: formatTime(d.RetiredAt),
	}
	if view.Metadata == nil {
		view.Metadata = map[string]string{}
	}
	if a := d.ActiveAssignment; a != nil {
		view.ActiveAssignment = &ActiveAssignment{
			a.ID.String(), a.Label, roomsensor.FormatTime(a.StartedAt), a.ExternalRef,
		}
	}
	return view
}

// formatTime formats a time as the API does; nil stays nil.
func formatTime(at *time.Time) *string {
	if at == nil {
		return nil
	}
	return new(roomsensor.FormatTime(*at))
}
