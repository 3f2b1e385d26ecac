drop index letter_ending;
