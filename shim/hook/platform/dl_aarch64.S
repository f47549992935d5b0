// The loader's entries, wrapped for aarch64; see dl_x86_64.S for what each does and why it jumps.
        .text

#define RTLD_DEEPBIND_BIT 3

        .macro SAVE
        stp     x29, x30, [sp, #-64]!
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        .endm

        .macro RESTORE
        ldp     x2, x3, [sp, #32]
        ldp     x0, x1, [sp, #16]
        ldp     x29, x30, [sp], #64
        .endm

        .macro LOAD register, symbol
        adrp    \register, \symbol
        ldr     \register, [\register, :lo12:\symbol]
        .endm

        .macro JUMP_TO real
        LOAD    x16, \real
        cbnz    x16, 9f
        SAVE
        bl      tidepool_find_loader
        RESTORE
        LOAD    x16, \real
9:      br      x16
        .endm

        .macro ENTRY name
        .globl  \name
        .type   \name, %function
        .globl  tidepool_\name
        .hidden tidepool_\name
        .p2align 4
\name:
tidepool_\name:
        hint    #34
        .endm

        .macro LOOKUP name, real, prepare
        ENTRY   \name
        cbz     x1, 1f
        ldrb    w16, [x1]
        cmp     w16, #'c'
        b.ne    3f
        ldrb    w16, [x1, #1]
        cmp     w16, #'u'
        b.ne    1f
        adrp    x16, tidepool_lookups_settled
        ldrb    w16, [x16, :lo12:tidepool_lookups_settled]
        cbnz    w16, 1f
4:      SAVE
        bl      \prepare
        mov     x16, x0
        mov     x17, x1
        RESTORE
        cbnz    x17, 2f
        mov     x0, x16
1:      JUMP_TO \real
2:      mov     x0, x17
        ret
3:      cmp     w16, #'d'
        b.ne    1b
        ldrb    w16, [x1, #1]
        cmp     w16, #'l'
        b.ne    1b
        adrp    x16, tidepool_loader_redirected
        ldrb    w16, [x16, :lo12:tidepool_loader_redirected]
        cbnz    w16, 1b
        b       4b
        .size   \name, .-\name
        .endm

        .macro PREPARE function
        SAVE
        bl      \function
        RESTORE
        .endm

        .macro OPEN name, real, flags, prepare
        ENTRY   \name
        tbz     \flags, #RTLD_DEEPBIND_BIT, 1f
        PREPARE \prepare
1:      JUMP_TO \real
        .size   \name, .-\name
        .endm

        LOOKUP  dlsym, tidepool_real_dlsym, tidepool_before_lookup
        LOOKUP  dlvsym, tidepool_real_dlvsym, tidepool_before_versioned_lookup
        OPEN    dlopen, tidepool_real_dlopen, w1, tidepool_before_deepbind
        OPEN    dlmopen, tidepool_real_dlmopen, w2, tidepool_before_deepbind_in

        ENTRY   dlclose
        PREPARE tidepool_before_close
        JUMP_TO tidepool_real_dlclose
        .size   dlclose, .-dlclose

        .section .note.GNU-stack, "", %progbits
