package control

import (
	"connectrpc.com/connect"

	"gswitch/control/api"
)

// DialTransparent returns a client of a daemon of bumps, as DialHost does.
func DialTransparent(address string) api.TransparentClient {
	return api.NewTransparentClient(dialer(address), "http://ghost", connect.WithAcceptCompression("gzip", nil, nil),
		connect.WithInterceptors(connect.UnaryInterceptorFunc(deadline)))
}
