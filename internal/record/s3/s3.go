// Package s3 keeps records in a bucket of S3, or of another server that speaks its protocol.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/trainyard/trainyard/internal/record"
)

// Bucket is a bucket, or what is below a prefix in it.
type Bucket struct {
	client         *minio.Client
	bucket, prefix string
}

// Open is the bucket at an address such as
//
//	s3://bucket/prefix?region=eu-central-1
//	s3://bucket/prefix?endpoint=http://minio.storage:9000
//
// The credentials are those of the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the file AWS_SHARED_CREDENTIALS_FILE, a web identity token,
// or the role of the machine, the first of these that there is. Nothing is asked of the server yet.
func Open(address string) (*Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the address of a bucket: use s3://BUCKET/PREFIX, with ?endpoint=https://HOST if it is not at AWS", address)
	}
	query := u.Query()
	endpoint, secure, err := endpointOf(query.Get("endpoint"))
	if err != nil {
		return nil, err
	}
	for key := range query {
		if key != "endpoint" && key != "region" {
			return nil, fmt.Errorf("%q: a bucket has no %s: use endpoint or region", address, key)
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = 20 * time.Second
	transport.MaxIdleConnsPerHost = 16
	transport.DisableCompression = true // else Go would unpack the parts of logs
	client, err := minio.New(endpoint, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: secure, Region: regionOf(query), Transport: transport,
		MaxRetries: 1, // the store retries, and holds what is not uploaded meanwhile
	})
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", address, err)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Bucket{client: client, bucket: u.Host, prefix: prefix}, nil
}

// endpointOf is the server's address, and whether it is reached by TLS.
func endpointOf(text string) (host string, secure bool, _ error) {
	if text == "" {
		return "s3.amazonaws.com", true, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
		return "", false, fmt.Errorf("endpoint %q: use http://HOST:PORT or https://HOST:PORT", text)
	}
	return u.Host, u.Scheme == "https", nil
}

func regionOf(query url.Values) string {
	for _, region := range []string{query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")} {
		if region != "" {
			return region
		}
	}
	return ""
}

// OpenStore is the store at an address, s3://… or a path. The directory is for what is not in the bucket yet; a path needs none.
func OpenStore(address, dir string) (*record.Store, error) {
	if !strings.Contains(address, "://") {
		path, err := filepath.Abs(address)
		return record.Open(path), err
	}
	bucket, err := Open(address)
	if err != nil {
		return nil, err
	}
	return record.OpenRemote(dir, bucket), nil
}

// Put writes an object.
func (b *Bucket) Put(ctx context.Context, name string, content []byte) error {
	_, err := b.client.PutObject(ctx, b.bucket, b.prefix+name, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{DisableMultipart: true})
	return b.explain(err)
}

// Get reads an object, or its first bytes.
func (b *Bucket) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	var options minio.GetObjectOptions
	if limit > 0 {
		if err := options.SetRange(0, limit-1); err != nil {
			return nil, err
		}
	}
	object, err := b.client.GetObject(ctx, b.bucket, b.prefix+name, options)
	if err != nil {
		return nil, b.explain(err)
	}
	defer object.Close() //nolint:errcheck // it was only read
	content, err := io.ReadAll(object)
	return content, b.explain(err)
}

// List returns all objects below a prefix.
func (b *Bucket) List(ctx context.Context, prefix string) (all []record.Object, _ error) {
	for o := range b.client.ListObjects(ctx, b.bucket, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, b.explain(o.Err)
		}
		all = append(all, record.Object{Name: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size, Modified: o.LastModified, Tag: o.ETag})
	}
	return all, nil
}

// Delete removes objects.
func (b *Bucket) Delete(ctx context.Context, names []string) error {
	objects := func(yield func(minio.ObjectInfo) bool) {
		for _, name := range names {
			if !yield(minio.ObjectInfo{Key: b.prefix + name}) {
				return
			}
		}
	}
	results, err := b.client.RemoveObjectsWithIter(ctx, b.bucket, objects, minio.RemoveObjectsOptions{})
	if err != nil {
		return b.explain(err)
	}
	for result := range results {
		if result.Err != nil {
			err = errors.Join(err, b.explain(result.Err))
		}
	}
	return err
}

// explain says which bucket an error is about.
func (b *Bucket) explain(err error) error {
	if err == nil {
		return nil
	}
	switch minio.ToErrorResponse(err).Code {
	case minio.NoSuchKey:
		return fs.ErrNotExist
	case minio.NoSuchBucket:
		return fmt.Errorf("there is no bucket %s: create it", b.bucket)
	}
	return fmt.Errorf("bucket %s: %w", b.bucket, err)
}
