//go:build !linux

package vnet

func hugePages() {}
