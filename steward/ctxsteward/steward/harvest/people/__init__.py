"""What people say in a transcript: wishes and corrections, as claims."""
