package config

import (
	"errors"
	"regexp"
)

// ObjectStore is where an archive in an object store is, and the keys for it.
type ObjectStore struct {
	S3Endpoint  string   `default:"https://s3.amazonaws.com" help:"Address of the object store for s3:// locations." name:"s3-endpoint" placeholder:"URL" setting:"" rule:"web-url"`
	S3Region    string   `help:"Region of the bucket." implied:"as the object store says" name:"s3-region" placeholder:"REGION" setting:"" rule:"region"`
	S3AccessKey Password `help:"Access key of the object store." implied:"none" name:"s3-access-key" placeholder:"KEY" setting:""`
	S3SecretKey Password `help:"Secret key of the object store." implied:"none" name:"s3-secret-key" placeholder:"KEY" setting:""`
}

var (
	regionForm = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	errRegion  = errors.New("must be the name of a region, such as eu-central-1")
)

func region(value string) error {
	if !regionForm.MatchString(value) {
		return errRegion
	}
	return nil
}

// Validate checks the form of the address and of the region.
func (c *ObjectStore) Validate() error { return validate(c) }

// CheckKeys checks that both keys are set, which only s3:// locations need.
func (c *ObjectStore) CheckKeys() error {
	const reason = "is missing. Give the key of a user of the object store who may list, read and write the bucket"
	switch {
	case c.S3AccessKey == "":
		return &ValueError{Flag: "s3-access-key", Reason: reason}
	case c.S3SecretKey == "":
		return &ValueError{Flag: "s3-secret-key", Reason: reason}
	}
	return nil
}
