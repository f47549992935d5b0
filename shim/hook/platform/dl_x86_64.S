// The loader's entries, wrapped for x86-64. Each ends in a jump to the real one with all arguments and
// the return address untouched: the loader finds RTLD_NEXT and a RUNPATH by its caller's address, and
// a wrapper that calls becomes that caller (measured: both break).
//
//   dlsym, dlvsym   a name that starts with "cu" lets the shim look for the driver first
//   dlopen, dlmopen the first RTLD_DEEPBIND redirects the loader's own entries, see adoption.cpp
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
        jne     1f
        cmpb    $'u', 1(%rsi)
        jne     1f
        cmpb    $0, tidepool_lookups_settled(%rip)
        jne     1f
        pushq   %rdi
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
        .size   \name, .-\name
        .endm

        .macro OPEN name real flags
        ENTRY   \name
        testl   $RTLD_DEEPBIND, \flags
        je      1f
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        call    tidepool_before_deepbind
        popq    %rdx
        popq    %rsi
        popq    %rdi
1:      JUMP_TO \real
        .size   \name, .-\name
        .endm

        LOOKUP  dlsym, tidepool_real_dlsym, tidepool_before_lookup
        LOOKUP  dlvsym, tidepool_real_dlvsym, tidepool_before_versioned_lookup
        OPEN    dlopen, tidepool_real_dlopen, %esi
        OPEN    dlmopen, tidepool_real_dlmopen, %edx

        .section .note.GNU-stack, "", @progbits
