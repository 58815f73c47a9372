module roomsensor/client/export

go 1.26.0

replace roomsensor/client => ..

require (
	github.com/google/uuid v1.6.0
	github.com/parquet-go/parquet-go v0.32.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.24.0
	pgregory.net/rapid v1.3.0
	roomsensor/client v0.0.0
)

require (
	github.com/andybalholm/brotli v1.2.6 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
