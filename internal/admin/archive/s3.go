package archive

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"roomsensor/internal/config"
)

// scheme begins the location of an archive in an object store: s3://BUCKET/PREFIX.
const scheme = "s3://"

// Open returns the files at a location: a directory, or s3://BUCKET/PREFIX.
func Open(location string, cfg *config.ObjectStore) (Files, error) {
	place, inStore := strings.CutPrefix(location, scheme)
	if !inStore {
		return directory(location), nil
	}
	if err := cfg.CheckKeys(); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(cfg.S3Endpoint)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the object store: %w", err)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(string(cfg.S3AccessKey), string(cfg.S3SecretKey), ""),
		Secure: endpoint.Scheme == "https", Region: cfg.S3Region,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the object store: %w", err)
	}
	bucket, prefix, _ := strings.Cut(place, "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &bucketFiles{client, bucket, prefix}, nil
}

// bucketFiles has the files of an archive in a bucket. Local files are temporary.
type bucketFiles struct {
	client *minio.Client
	bucket string
	prefix string // empty, or with a slash at the end
}

// List lists the files.
func (b *bucketFiles) List(ctx context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	for object := range b.client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, fmt.Errorf("listing %s%s/%s: %w", scheme, b.bucket, b.prefix, object.Err)
		}
		sizes[strings.TrimPrefix(object.Key, b.prefix)] = object.Size
	}
	return sizes, nil
}

// Open downloads a file.
func (b *bucketFiles) Open(ctx context.Context, path string) (*os.File, error) {
	file, err := b.Create(path)
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // It exists until it is closed.
	object, err := b.client.GetObject(ctx, b.bucket, b.prefix+path, minio.GetObjectOptions{})
	if err == nil {
		_, err = io.Copy(file, object)
		_ = object.Close()
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("downloading %s: %w", path, err)
	}
	return file, nil
}

// Create creates a temporary file.
func (*bucketFiles) Create(string) (*os.File, error) {
	file, err := os.CreateTemp("", "roomsensor-archive-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary file: %w", err)
	}
	return file, nil
}

// Store uploads a file, which the store replaces in one step, and compares what the store has then.
func (b *bucketFiles) Store(ctx context.Context, file *os.File, path, sum string) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = b.client.PutObject(ctx, b.bucket, b.prefix+path, file, size,
			minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet"})
	}
	if err != nil {
		return fmt.Errorf("uploading %s: %w", path, err)
	}
	stored, err := b.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = stored.Close() }()
	return checkSum(stored, sum)
}
