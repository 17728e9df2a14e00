package order

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// generatedBytes is the entropy of a generated password or credential secret, in bytes. It is what a
// 256-bit key has; more would only meet the 72-byte limit of bcrypt, which Keystone hashes with.
const generatedBytes = 32

// GenerateSecret creates a child Secret with a generated value under key, once: 32 random bytes as
// 43 characters of base64url. A Secret of ours that is there keeps its value, and a foreign one is
// refused.
func (p *Pass) GenerateSecret(ctx context.Context, discriminator, key string) (created bool, err error) {
	random := make([]byte, generatedBytes)
	if _, err := rand.Read(random); err != nil {
		return false, fmt.Errorf("reading random bytes: %w", err)
	}
	return p.CreateOnce(ctx, &corev1.Secret{
		ObjectMeta: p.ChildMeta(discriminator),
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{key: []byte(base64.RawURLEncoding.EncodeToString(random))},
	})
}

// ApplySecret writes a child Secret whose whole content the pass knows.
func (p *Pass) ApplySecret(ctx context.Context, discriminator string, data map[string][]byte) error {
	return p.writer().ApplySecret(ctx, &corev1.Secret{
		ObjectMeta: p.ChildMeta(discriminator),
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	})
}
