package fleet

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
)

// sampleRules are the rules of devices by the column sampling. A device that was once mean may have samples.
var sampleRules = map[string]roomsensor.SampleRule{
	"whole": roomsensor.NoSample, "was_mean": roomsensor.SampleIfAny, "mean": roomsensor.Sample,
}

// SetSampling changes what becomes of the measurements of a device of a team that arrive afterwards (A13.4).
func (s *Store) SetSampling(ctx context.Context, teamID, deviceID uuid.UUID, sampling roomsensor.Sampling) error {
	return s.InChange(ctx, "changing the sampling of a device", func(tx pgx.Tx) error {
		return s.setSampling(ctx, tx, teamID, deviceID, sampling)
	})
}

func (s *Store) setSampling(
	ctx context.Context, tx pgx.Tx, teamID, deviceID uuid.UUID, sampling roomsensor.Sampling,
) error {
	mean := sampling == roomsensor.SamplingMean
	err := s.Queries.DeviceSetSampling(ctx, tx, db.DeviceSetSamplingParams{TeamID: teamID, DeviceID: deviceID, Mean: mean})
	if err != nil || !mean {
		return err
	}
	return s.Queries.DeviceSetSampled(ctx, tx, db.DeviceSetSampledParams{TeamID: teamID, DeviceID: deviceID})
}

// Samplings returns the samplings of those devices of a team that are not whole.
func (s *Store) Samplings(ctx context.Context, teamID uuid.UUID) (map[uuid.UUID]roomsensor.Sampling, error) {
	ids, err := s.Queries.DeviceSamplingList(ctx, s.Pool, teamID)
	if err != nil {
		return nil, fmt.Errorf("listing the samplings of devices: %w", pg.Translate(err))
	}
	samplings := make(map[uuid.UUID]roomsensor.Sampling, len(ids))
	for _, id := range ids {
		samplings[id] = roomsensor.SamplingMean
	}
	return samplings, nil
}
