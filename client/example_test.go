package client_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
)

func Example() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	for device, err := range c.Devices(ctx, client.DeviceQuery{Metadata: map[string]string{"building": "gym"}}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(device.DeviceID, *device.DisplayName)
	}
	// Output:
	// 0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10 Weight room
}

func ExampleClient_Readings() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	day := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC)
	query := client.ReadingQuery{Window: client.Between(day, day.AddDate(0, 0, 1))}
	for reading, err := range c.Readings(ctx, weightRoom, query) {
		if err != nil {
			panic(err) // The readings before are complete; those after are missing.
		}
		humidity := "not measured"
		if reading.HumidityPct != nil {
			humidity = fmt.Sprintf("%.1f %%", *reading.HumidityPct)
		}
		fmt.Println(reading.BucketAt.Format(time.TimeOnly), humidity)
	}
	// Output:
	// 00:10:00 40.3 %
	// 00:05:00 not measured
	// 00:00:00 40.1 %
}

func ExampleClient_Aggregates() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	day := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC)
	query := client.AggregateQuery{Window: client.Between(day, day.AddDate(0, 0, 1)), Interval: client.Daily}
	for aggregate, err := range c.Aggregates(ctx, weightRoom, query) {
		if err != nil {
			panic(err)
		}
		fmt.Println(aggregate.BucketAt.Format(time.DateOnly), *aggregate.CO2PPM.Min, *aggregate.CO2PPM.Max, aggregate.CO2PPM.Count)
	}
	// Output:
	// 2024-11-01 601 612 3
}

func ExampleClient_Coverage() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	night := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC)
	query := client.CoverageQuery{Window: client.Between(night, night.Add(time.Hour))}
	for device, err := range c.Coverage(ctx, query) {
		if err != nil {
			panic(err)
		}
		if device.Present < device.Expected {
			fmt.Printf("%s: %d of %d readings\n", device.DeviceID, device.Present, device.Expected)
		}
	}
	// Output:
	// 0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10: 3 of 12 readings
	// 6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421: 1 of 12 readings
}

func ExampleClient_Follow() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	// The copy stands for a database. Readings and position belong into one transaction.
	type key struct {
		device uuid.UUID
		bucket time.Time
	}
	stored := map[key]client.Reading{}
	var position client.Position // empty in the first run, and later the one that is stored
	query := client.ChangeQuery{UntilCaughtUp: true}
	for page, err := range c.Follow(ctx, query, position) {
		if err != nil {
			panic(err)
		}
		for _, r := range page.Readings {
			stored[key{r.DeviceID, r.BucketAt}] = r.Reading
		}
		position = page.Position
	}
	fmt.Println(len(stored), position != "")
	// Output:
	// 0 true
}

func ExampleClient_UpdateDevice() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	device, err := c.UpdateDevice(ctx, dorm, client.DeviceChange{
		Metadata: map[string]*string{"floor": new("2"), "wing": nil}, // sets floor and removes wing
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(device.Metadata)
	// Output:
	// map[floor:2]
}

func ExampleClient_ExportCSV() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	day := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC)
	export, err := c.ExportCSV(ctx, client.ExportQuery{
		Window: client.Between(day.Add(10*time.Minute), day.Add(time.Hour)), Metrics: []client.Metric{client.CO2PPM},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = export.Close() }()
	if _, err := io.Copy(os.Stdout, export); err != nil {
		panic(err) // The export is incomplete: discard it.
	}
	// Output:
	// bucket_at,device_id,display_name,co2_ppm,valid_mask
	// 2024-11-01T00:10:00Z,0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10,Weight room,601,31
	// 2024-11-01T00:10:00Z,6d2f9b34-1c7d-4e0b-b1aa-93c0d5e8f421,,455,31
}

func ExampleHasCode() {
	ctx := context.Background()
	c, err := client.New(baseURL, apiKey)
	if err != nil {
		panic(err)
	}
	_, err = c.CountReadings(ctx, client.ExportQuery{Window: client.Last(100 * 24 * time.Hour)})
	fmt.Println(client.HasCode(err, client.CodeTimeRangeTooWide))
	// Output:
	// true
}
