package vswitch

// What external tests share with those of the package.

// FanConfig is fanConfig.
var FanConfig = fanConfig
