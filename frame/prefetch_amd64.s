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

// func prefetchAll(addrs *uint64, n uint64, mem, meta unsafe.Pointer, shift uint64)
TEXT ·prefetchAll(SB), NOSPLIT, $0-40
	MOVQ addrs+0(FP), SI
	MOVQ n+8(FP), DX
	MOVQ mem+16(FP), DI
	MOVQ meta+24(FP), R8
	MOVQ shift+32(FP), CX
loop:
	TESTQ DX, DX
	JZ done
	MOVQ (SI), AX
	PREFETCHT0 (DI)(AX*1)
	SHRQ CX, AX
	SHLQ $7, AX
	PREFETCHT0 (R8)(AX*1)
	PREFETCHT0 64(R8)(AX*1)
	ADDQ $8, SI
	DECQ DX
	JMP loop
done:
	RET
