-- WorkerSet tells the trigger of readings that a worker writes: the transaction records itself in feed_batches, and updates
-- the state of every device whose readings it changes. The other settings leave one plan for DeviceHeartbeatUpdate, which
-- locks the devices in the order of their ids.
-- name: WorkerSet :exec
SELECT set_config('roomsensor.worker', 'on', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_seqscan', 'off', true);
