package minio_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin/archive"
	"roomsensor/internal/config"
	"roomsensor/test/proctest"
	"roomsensor/test/storetest"
)

const (
	bucket   = "readings"
	password = "roomsensor-minio"
)

// store is a MinIO with a bucket.
type store struct {
	*minio.Client

	config config.ObjectStore
}

// newStore builds a MinIO, which takes minutes the first time, and starts it.
func newStore(t *testing.T) *store {
	t.Helper()
	program, err := proctest.Build(t.Context(), t.TempDir(), "github.com/minio/minio")
	require.NoError(t, err)
	address := proctest.Address(t)
	console := proctest.Address(t)
	process, err := proctest.Start(proctest.Command{
		Path: program, Args: []string{"server", "--address", address, "--console-address", console, t.TempDir()},
		Env: []string{"MINIO_ROOT_USER=roomsensor", "MINIO_ROOT_PASSWORD=" + password, "MINIO_BROWSER=off", "MINIO_UPDATE=off"},
		Log: t.Output(),
	})
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	require.NoError(t, process.AwaitOK(ctx, "http://"+address+"/minio/health/ready"))
	s := &store{config: config.ObjectStore{S3Endpoint: "http://" + address, S3AccessKey: "roomsensor", S3SecretKey: password}}
	s.Client, err = minio.New(address, &minio.Options{Creds: credentials.NewStaticV4("roomsensor", password, "")})
	require.NoError(t, err)
	require.NoError(t, s.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}))
	return s
}

// index reads the entries of an archive.
func index(t *testing.T, files archive.Files) []archive.Entry {
	t.Helper()
	file, err := files.Open(t.Context(), "index.parquet")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	info, err := file.Stat()
	require.NoError(t, err)
	entries, err := parquet.Read[archive.Entry](file, info.Size())
	require.NoError(t, err)
	return entries
}

// TestArchive checks that an archive in an object store is the same as one in a directory, and that it is written again
// and kept in the same cases.
func TestArchive(t *testing.T) {
	t.Parallel()
	s, f := newStore(t), storetest.New(t)
	f.Fill(t, 40*288, f.DeviceID)
	open := func(location string, cfg config.ObjectStore) archive.Files {
		t.Helper()
		files, err := archive.Open(location, &cfg)
		require.NoError(t, err)
		return files
	}
	options := archive.Options{
		Teams: []uuid.UUID{f.TeamID}, Until: storetest.At("2026-03-01T00:00:00Z"), Progress: func(string) {},
	}
	write := func(files archive.Files) archive.Result {
		t.Helper()
		r, err := archive.Write(t.Context(), f.Store, files, options)
		require.NoError(t, err)
		return r
	}
	directory, objects := open(t.TempDir(), s.config), open("s3://"+bucket+"/one/two", s.config)
	for _, files := range []archive.Files{directory, objects, open("s3://"+bucket, s.config)} {
		require.Equal(t, 2, write(files).Written)
		require.Equal(t, 2, write(files).Unchanged)
		want, got := index(t, directory), index(t, files)
		require.Len(t, got, 2)
		for i := range want {
			got[i].WrittenAt = want[i].WrittenAt
		}
		require.Equal(t, want, got)
	}
	object := "one/two/" + index(t, objects)[0].Path
	info, err := s.StatObject(t.Context(), bucket, object, minio.StatObjectOptions{})
	require.NoError(t, err)
	require.Equal(t, index(t, objects)[0].Bytes, info.Size)

	f.Exec(t, `UPDATE readings SET co2_ppm = 5, ingested_at = now() WHERE bucket_at = '2026-01-05Z'`)
	require.Equal(t, 1, write(objects).Written, "a late change")
	f.Exec(t, `DELETE FROM readings WHERE bucket_at < '2026-01-02Z'`)
	require.Equal(t, 1, write(objects).Kept, "deleted readings")
	require.NoError(t, s.RemoveObject(t.Context(), bucket, object, minio.RemoveObjectOptions{}))
	require.Equal(t, 1, write(objects).Written, "a missing file")

	wrong := s.config
	wrong.S3SecretKey = "wrong"
	for location, cfg := range map[string]config.ObjectStore{"s3://" + bucket: wrong, "s3://missing": s.config} {
		_, err := archive.Write(t.Context(), f.Store, open(location, cfg), options)
		require.Error(t, err)
		require.NotContains(t, err.Error(), password)
	}
}

// TestLargeFile stores a file that the client uploads in parts.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	files, err := archive.Open("s3://"+bucket, &s.config)
	require.NoError(t, err)
	file, err := files.Create("large")
	require.NoError(t, err)
	defer func() { require.NoError(t, os.Remove(file.Name())) }()
	sum := sha256.New()
	_, err = io.CopyN(io.MultiWriter(file, sum), rand.Reader, 50<<20)
	require.NoError(t, err)
	require.NoError(t, files.Store(t.Context(), file, "large", hex.EncodeToString(sum.Sum(nil))))
	require.NoError(t, file.Close())
	info, err := s.StatObject(t.Context(), bucket, "large", minio.StatObjectOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 50<<20, info.Size)
	require.Contains(t, info.ETag, "-", "it has parts")
}
