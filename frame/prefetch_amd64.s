#include "textflag.h"

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func prefetchFrame(meta, chunk unsafe.Pointer)
TEXT ·prefetchFrame(SB), NOSPLIT, $0-16
	MOVQ meta+0(FP), AX
	MOVQ chunk+8(FP), BX
	PREFETCHT0 (BX)
	PREFETCHT0 64(BX)
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET
