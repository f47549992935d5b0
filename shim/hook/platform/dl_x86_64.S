// The loader's entries, wrapped for x86-64. Each ends in a jump to the real one with all arguments and
// the return address untouched: the loader finds RTLD_NEXT and a RUNPATH by its caller's address, and
// a wrapper that calls becomes that caller (measured: both break).
//
//   dlsym, dlvsym   a name that starts with "cu" lets the shim look for the driver first, one that starts
//                   with "dl" lets it put these entries in libc's table
//   dlopen, dlmopen RTLD_DEEPBIND lets it do both, for the object will bind past us; see loader.cpp
//   dlclose         an adopted driver is kept from now on: its addresses are saved
        .text

#define RTLD_DEEPBIND 8

// Jumps to the real entry, found at the first use: another library's constructor may run before ours.
        .macro JUMP_TO real
        movq    \real(%rip), %rax
        testq   %rax, %rax
        jne     9f
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rcx
        subq    $8, %rsp
        call    tidepool_find_loader
        addq    $8, %rsp
        popq    %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        movq    \real(%rip), %rax
9:      jmp     *%rax
        .endm

        .macro ENTRY name
        .globl  \name
        .type   \name, @function
        .globl  tidepool_\name
        .hidden tidepool_\name
        .p2align 4
\name:
tidepool_\name:
        endbr64
        .endm

// (handle, name, ...): before_lookup answers {handle to use, answer or null} in rax, rdx.
        .macro LOOKUP name real prepare
        ENTRY   \name
        testq   %rsi, %rsi
        je      1f
        cmpb    $'c', (%rsi)
        jne     3f
        cmpb    $'u', 1(%rsi)
        jne     1f
        cmpb    $0, tidepool_lookups_settled(%rip)
        jne     1f
4:      pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        call    \prepare
        movq    %rdx, %rcx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        testq   %rcx, %rcx
        jne     2f
        movq    %rax, %rdi
1:      JUMP_TO \real
2:      movq    %rcx, %rax
        ret
3:      cmpb    $'d', (%rsi)
        jne     1b
        cmpb    $'l', 1(%rsi)
        jne     1b
        cmpb    $0, tidepool_loader_redirected(%rip)
        jne     1b
        jmp     4b
        .size   \name, .-\name
        .endm

        .macro PREPARE function
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        call    \function
        popq    %rdx
        popq    %rsi
        popq    %rdi
        .endm

        .macro OPEN name real flags prepare
        ENTRY   \name
        testl   $RTLD_DEEPBIND, \flags
        je      1f
        PREPARE \prepare
1:      JUMP_TO \real
        .size   \name, .-\name
        .endm

        LOOKUP  dlsym, tidepool_real_dlsym, tidepool_before_lookup
        LOOKUP  dlvsym, tidepool_real_dlvsym, tidepool_before_versioned_lookup
        OPEN    dlopen, tidepool_real_dlopen, %esi, tidepool_before_deepbind
        OPEN    dlmopen, tidepool_real_dlmopen, %edx, tidepool_before_deepbind_in

        ENTRY   dlclose
        PREPARE tidepool_before_close
        JUMP_TO tidepool_real_dlclose
        .size   dlclose, .-dlclose

        .section .note.GNU-stack, "", @progbits
