// Package config is the one table of settings and the immutable [Config] read from it.
//
// Every setting stands once in [Settings]: name, type, default, help. Environment variables, options of init, the
// documentation (docs/settings.md is [Markdown]) and shmem.info() all come from that table. A value that cannot be read is an
// error that quotes it; an unknown SHMEM_ name is reported, so a typing mistake is not silently a default.
package config
