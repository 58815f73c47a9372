package alerts

import (
	"context"
	"slices"
)

// untried are the alerts that no fault of this trial fires.
var untried = map[string]string{
	"RoomsensorHourlyRefreshOld": "the Apache edition of TimescaleDB has no continuous aggregate, and Debian has no other",
}

// faults returns the faults in order: each starts from the state that the one before leaves behind.
func faults() []*fault {
	return slices.Concat(ofQueue(), ofRequests(), ofIngest(), ofDatabase())
}

func ofQueue() []*fault {
	return []*fault{
		{
			does: "NATS stops", alerts: []string{"RoomsensorQueueUnavailable", "RoomsensorReceiverErrors"},
			inject: stopQueue, repair: startQueue,
			shows: map[string]string{"roomsensor healthcheck": "queue", "roomsensor doctor": "queue"},
		},
		{
			does: "the network between one of two workers and NATS breaks", alerts: []string{"RoomsensorWorkerBlind"},
			inject: func(_ context.Context, e *env) error { e.blind.Cut(); return nil },
			repair: func(_ context.Context, e *env) error { e.blind.Restore(); return nil },
		},
		{
			does: "the database stops, and uploads fill the stream", alerts: []string{"RoomsensorStreamNearlyFull"},
			inject: stopDatabase, strike: fillStream, repair: startAndRaise,
			shows: map[string]string{"roomsensor stream status": `"waiting"`},
		},
		{
			does: "devices send more than STREAM_MAX_BYTES holds", alerts: []string{"RoomsensorStreamReachShort"},
			inject: fillThreeQuarters, strike: keepFilling, repair: raiseStream("128MiB"),
			shows: map[string]string{"roomsensor stream status": `"max_bytes"`},
		},
		{
			does:   "the machine of NATS and of the workers is replaced, and the disk of the stream is empty",
			alerts: []string{"RoomsensorStreamLost"}, inject: loseStream, repair: confirmStream,
			shows: map[string]string{"roomsensor doctor": "stream"}, logs: []string{"lost the stream of uploads"},
		},
	}
}

func ofRequests() []*fault {
	return []*fault{
		{
			does: "the API stops and is not started again", alerts: []string{"RoomsensorAbsent"},
			inject: func(_ context.Context, e *env) error { e.processes[apiName].Kill(); return nil },
			repair: func(ctx context.Context, e *env) error { return e.processes[apiName].start(ctx) },
		},
		{
			does: "a process of another version stays after an upgrade", alerts: []string{"RoomsensorMixedVersions"},
			inject: startOldVersion, repair: stopOldVersion,
		},
		{
			does:   "somebody locks the table of devices in psql and leaves the transaction open",
			alerts: []string{"RoomsensorPoolExhausted"}, inject: lockDevices, strike: requestMuch, repair: terminateOldest,
			shows: map[string]string{waitingStatements: "LOCK TABLE devices", blockingSessions: "LOCK TABLE devices"},
		},
		{
			does:   "the machine of the database stands still for 2.8 seconds at a time",
			alerts: []string{"RoomsensorAPISlow", "RoomsensorDashboardSlow"}, inject: nothing, strike: stallDatabase,
		},
		{
			does: "devices upload over connections that need 12 seconds", alerts: []string{"RoomsensorReceiverSlow"},
			inject: nothing, strike: uploadSlowly,
		},
		{
			does: "five teams send large bodies that arrive slowly", alerts: []string{"RoomsensorReceiverMemory"},
			inject: nothing, strike: uploadLarge,
		},
		{
			does: "a client reads an export slowly", alerts: []string{"RoomsensorExportRunsLong"},
			inject: nothing, strike: readSlowly,
		},
	}
}

func ofIngest() []*fault {
	return []*fault{
		{
			does: "one of two workers is suspended", alerts: []string{"RoomsensorProcessDown"},
			inject: suspendWorker, repair: continueWorker,
		},
		{
			does: "the credential of the devices is revoked", alerts: []string{"RoomsensorNothingStored"},
			inject: revokeCredential, repair: replaceCredential,
		},
		{
			does:   "a trigger refuses the readings of one device",
			alerts: []string{"RoomsensorHighDeliveries", "RoomsensorUploadsParked"}, inject: refuseDevice, repair: skipAndAccept,
			logs:  []string{`"stream_sequence"`, "parked an upload"},
			shows: map[string]string{"roomsensor rejects list --reason not_storable": "XX000"},
		},
		{
			does: "a trigger refuses all readings", alerts: []string{"RoomsensorWorkerHolds"},
			inject: refuseAll, repair: acceptAll,
			shows: map[string]string{"roomsensor healthcheck": "holds uploads", foreignTriggers: "refuse_readings"},
			logs:  []string{"holding refused uploads", "SQLSTATE XX000"},
		},
		{
			does: "devices have a wrong clock", alerts: []string{"RoomsensorRejectsRise"}, inject: nothing, strike: sendFuture,
			shows: map[string]string{
				"roomsensor rejects list --limit 20": "measured_at_out_of_range", rejectsByTeam: mainTeam,
			},
		},
		{
			does: "a team sends 4 MB of uploads of unknown units", alerts: []string{"RoomsensorRejectsDropped"},
			inject: sendUnknown, shows: map[string]string{"roomsensor rejects list --limit 100": "unknown_unit"},
		},
	}
}

func ofDatabase() []*fault {
	return []*fault{
		{
			does: "the database stops",
			alerts: []string{
				"RoomsensorDatabaseUnavailable", "RoomsensorNotReady", "RoomsensorAPIErrors", "RoomsensorDashboardErrors",
				"RoomsensorTablesLate",
			},
			inject: stopDatabase, repair: startDatabase,
			shows: map[string]string{
				"roomsensor migrate status": "database", "roomsensor healthcheck": "database", "roomsensor doctor": "database",
			},
		},
		{
			does:   "the machine of the standby in READ_DATABASE_URL is gone",
			alerts: []string{"RoomsensorStandbyUnused"},
			inject: nameStandby, repair: removeStandby,
			shows: map[string]string{"roomsensor doctor": "standby"},
		},
		{
			does:   "another program opens connections and does not close them",
			alerts: []string{"RoomsensorConnectionsExhausted"},
			inject: openConnections, repair: endConnections,
			shows: map[string]string{connectionsByApplication: "reporting"},
		},
		{
			does: "the right of the workers on a table is revoked by hand", alerts: []string{"RoomsensorMaintenanceFails"},
			inject: revokeRight("ordered_chunks"), repair: restoreRights, logs: []string{"could not rewrite chunks"},
		},
		{
			does: "the right of the workers on another table is revoked by hand", alerts: []string{"RoomsensorStatisticsOld"},
			inject: revokeRight("ingest_keys"), repair: restoreRights,
			logs: []string{"could not read statistics of the database"},
		},
		{
			does: "20 devices are created before they are installed", alerts: []string{"RoomsensorDevicesOffline"},
			inject: createDevices, repair: installDevices,
			shows: map[string]string{"roomsensor device list --team Hall": "offline"}, team: hallTeam,
		},
		{
			does: "a key of each kind expires in 2 days", alerts: []string{"RoomsensorKeysExpire"},
			inject: createExpiringKeys, repair: createSuccessors,
			shows: map[string]string{"roomsensor key list --team Riverside": "expires_at"},
		},
		{
			does:   "readings of a year are imported on a server with 64 locks per transaction",
			alerts: []string{"RoomsensorChunksExceedLocks"}, inject: importYear, repair: raiseLocks,
			shows: map[string]string{"roomsensor migrate status": "max_locks_per_transaction"},
		},
	}
}

// nothing is the injection of a fault that is all in its strike.
func nothing(context.Context, *env) error { return nil }
